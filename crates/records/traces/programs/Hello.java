import java.util.stream.Collectors;
import java.util.stream.IntStream;

public class Hello {
    public static void main(String[] arguments) {
        var groups = IntStream.range(0, 400000).parallel()
            .mapToObj(number -> Integer.toString(number * 7))
            .collect(Collectors.groupingByConcurrent(digits -> digits.length() % 7));
        System.out.println(groups.size());
    }
}
